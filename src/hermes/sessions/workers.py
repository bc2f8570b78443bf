"""The threads that a database's work runs on, few and bounded, each job in a transaction.

What a job does and how a caller waits for it is not known here.
"""

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeAlias, TypeVar

from sqlalchemy import Connection, Engine

from hermes.sessions import database

T = TypeVar("T")

Job: TypeAlias = Callable[[Connection], T]
"""Work over an open connection; it neither commits nor rolls back."""


class _Write(Generic[T]):
    """A job that waits for its transaction, and what came of it."""

    __slots__ = ("_error", "_job", "_result", "future")

    def __init__(self, job: Job[T]) -> None:
        self.future: Future[T] = Future()
        self._job = job
        self._result: T
        self._error: BaseException | None = None

    def run(self, connection: Connection) -> None:
        """Do the work; a failure is the transaction's."""
        self._result = self._job(connection)

    def run_apart(self, connection: Connection) -> None:
        """Do the work inside a savepoint; a failure undoes this job alone."""
        # Past SQLAlchemy's nested transactions, which cost as much as a whole statement each.
        cursor = connection.connection.cursor()
        cursor.execute("SAVEPOINT hermes_job")
        try:
            with database.errors_mapped():
                self._result = self._job(connection)
        except BaseException as error:  # noqa: BLE001 - handed to the caller by settle()
            self._error = error
            # Fails when the database has dropped the whole transaction; then so does the group.
            cursor.execute("ROLLBACK TO hermes_job")
        cursor.execute("RELEASE hermes_job")
        cursor.close()

    def settle(self, failure: BaseException | None) -> None:
        """Tell the caller, after the transaction ended; ``failure`` is the transaction's own."""
        error = self._error or failure
        if error is None:
            self.future.set_result(self._result)
        else:
            self.future.set_exception(error)


class Workers:
    """Runs reads beside each other and writes in order of arrival.

    ``group``: how many waiting writes share one transaction at most, each in a savepoint of its
    own. A write that has begun is finished; one that is cancelled before leaves no trace.
    """

    def __init__(self, engine: Engine, *, writers: int, readers: int, group: int) -> None:
        self._engine = engine
        self._writing = database.writing(engine)
        self._group = group
        self._waiting: deque[_Write[Any]] = deque()
        self._writers = ThreadPoolExecutor(writers, "hermes-session-write")
        self._readers = ThreadPoolExecutor(readers, "hermes-session-read")

    def write(self, job: Job[T]) -> Future[T]:
        """Queue a job that changes rows; its result comes after the commit.

        Raises:
            SessionError: ``session_store_unavailable``, after ``close``.

        """
        write = _Write(job)
        self._waiting.append(write)
        try:
            self._writers.submit(self._write_waiting)
        except RuntimeError as error:
            raise database.unavailable() from error
        return write.future

    def read(self, job: Job[T]) -> Future[T]:
        """Queue a job that sees one moment of the database; raises as ``write`` does."""
        try:
            return self._readers.submit(self._read, job)
        except RuntimeError as error:
            raise database.unavailable() from error

    def close(self) -> None:
        """Finish what was queued, end the threads, close the connections; idempotent."""
        self._readers.shutdown()
        self._writers.shutdown()
        self._engine.dispose()

    def _read(self, job: Job[T]) -> T:
        with database.errors_mapped(), self._engine.connect() as connection:
            return job(connection)

    def _write_waiting(self) -> None:
        batch = self._take()
        if not batch:
            return
        failure: BaseException | None = None
        try:
            with database.errors_mapped(), self._writing.begin() as connection:
                if len(batch) == 1:
                    batch[0].run(connection)
                else:
                    for write in batch:
                        write.run_apart(connection)
        except BaseException as error:  # noqa: BLE001 - handed to every caller of the group
            failure = error
        for write in batch:
            write.settle(failure)

    def _take(self) -> list[_Write[Any]]:
        batch: list[_Write[Any]] = []
        while len(batch) < self._group:
            try:
                write = self._waiting.popleft()
            except IndexError:
                break
            if write.future.set_running_or_notify_cancel():
                batch.append(write)
        return batch
