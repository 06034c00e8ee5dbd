"""Every error that Penstock raises on purpose, free of HTTP and of SQL.

    PenstockError
    ├── InvalidRequest            the request can't be right; says which field and what to do
    │   ├── RequestTooLarge
    │   ├── UnknownEncoding       a body that is compressed as a whole
    │   ├── OutsideLake           a location where this server keeps nothing
    │   ├── InvalidView           a view's schema, version or representation can't be right
    │   ├── InvalidTable          an Iceberg table's schema, spec, snapshot or ref can't be right
    │   ├── FunctionFailed        a function that fills a column can't be run, or failed on a row
    │   ├── InvalidFunction       a function as it is declared can't be right
    │   ├── FunctionDisabled      a registered function, or a version of it, takes no new work
    │   ├── TypesUnknown          a query whose columns only Spark can type
    │   ├── NothingAdded          -1 stands for what this request added, and it added nothing
    │   └── DialectLost           a replacement without a dialect that the view has now
    ├── Unsupported               a part of the protocol that this server does not serve
    ├── NotFound
    │   ├── NamespaceNotFound  TableNotFound  VersionNotFound
    │   ├── TagNotFound  BranchNotFound  TransactionNotFound
    │   │                                └── JobNotFound
    │   ├── ColumnNotFound  IndexNotFound  ManifestNotFound
    │   └── ViewNotFound  WarehouseNotFound  FileNotFound
    │       TokenNotFound  GrantNotFound  FunctionNotFound
    ├── AlreadyExists
    │   ├── NamespaceAlreadyExists  TableAlreadyExists
    │   │                           └── ViewAlreadyExists
    │   ├── IndexAlreadyExists  TagAlreadyExists  BranchAlreadyExists
    │   └── ManifestAlreadyExists
    ├── NamespaceNotEmpty
    ├── InvalidTableState         the table's files, or what it is, don't allow it
    │   ├── ViewIsNoTable         the name is that of a view that holds no rows
    │   ├── NotALanceTable        the name is that of an Iceberg table
    │   └── VanishedFile          a version, or a name for one, that was there a moment ago is gone
    ├── TableInUse                views read it, or columns and views use the function
    ├── SchemaMismatch            the data does not fit the table's columns
    ├── TooManyRequests           more work at once than this server takes on
    ├── ConcurrentCommit          somebody else was first; read again and retry
    │   ├── RequirementFailed     what the client asserts of the object does not hold
    │   └── LeaseLost             the attempt that reports does not hold the job any more
    ├── NotAuthenticated          no valid credentials
    ├── Forbidden                 this caller may not do that
    ├── NeedsConsent              a view would read what nobody said yes to who may read it
    ├── Unprocessable             understood, but contradicts itself or what was said before
    │   └── KeyMismatch           an idempotency key that was used for something else
    ├── KeyUsed                   the idempotency key was used already; its answer is replayed
    ├── OutcomeUnknown            the commit may or may not have happened
    ├── JobFailed                 a job that somebody waited for did not succeed
    │   └── JobCanceled
    ├── Unavailable               a part we need (database, storage) does not answer now
    │   ├── TimedOut              a statement that had no result in its time
    │   └── DamagedFile           a file of a table is missing or is not what it was
    └── DatabaseMismatch          the database does not belong to this release

Each protocol maps these classes to its own numbers in one table. Anything outside
the tree is a bug.
"""

from typing import ClassVar


class PenstockError(Exception):
    """The root: `message` says what happened to what, `detail` what to do next.

    `subject` is the identifier of what it happened to, for protocols that word it themselves.
    """

    default: ClassVar[str] = "the request failed"

    def __init__(
        self, message: str = "", *, detail: str = "", subject: tuple[str, ...] = ()
    ) -> None:
        self.message = message or self.default
        self.detail = detail
        self.subject = subject
        super().__init__(self.message)
        if detail:
            # A traceback shows it below the message.
            self.add_note(detail)


class InvalidRequest(PenstockError):
    default = "the request is not valid"


class RequestTooLarge(InvalidRequest):
    default = "the request body is too large"


class UnknownEncoding(InvalidRequest):
    default = "the body has an encoding that this server does not read"


class OutsideLake(InvalidRequest):
    default = "the location is outside the roots of this lake"


class InvalidView(InvalidRequest):
    default = "the view is not valid"


class InvalidTable(InvalidRequest):
    default = "the table is not valid"


class FunctionFailed(InvalidRequest):
    default = "the function failed"


class InvalidFunction(InvalidRequest):
    default = "the function is not valid"


class FunctionDisabled(InvalidRequest):
    default = "the function is disabled"


class TypesUnknown(InvalidRequest):
    default = "the types of the query's columns are not known"


class NothingAdded(InvalidRequest):
    default = "nothing was added in this request"


class QueryRefused(InvalidRequest):
    default = "the runner refuses the SQL of the view"


class DialectLost(InvalidRequest):
    default = "the replacement loses a dialect"


class Unsupported(PenstockError):
    default = "this operation is not supported"


class NotFound(PenstockError):
    default = "not found"


class NamespaceNotFound(NotFound):
    default = "namespace not found"


class TableNotFound(NotFound):
    default = "table not found"


class VersionNotFound(NotFound):
    default = "table version not found"


class TagNotFound(NotFound):
    default = "tag not found"


class BranchNotFound(NotFound):
    default = "branch not found"


class TransactionNotFound(NotFound):
    default = "transaction not found"


class JobNotFound(TransactionNotFound):
    default = "job not found"


class ColumnNotFound(NotFound):
    default = "column not found"


class IndexNotFound(NotFound):
    default = "index not found"


class ManifestNotFound(NotFound):
    default = "manifest not found"


class ViewNotFound(NotFound):
    default = "view not found"


class WarehouseNotFound(NotFound):
    default = "warehouse not found"


class FileNotFound(NotFound):
    default = "file not found"


class TokenNotFound(NotFound):
    default = "key not found"


class GrantNotFound(NotFound):
    default = "grant not found"


class FunctionNotFound(NotFound):
    default = "function not found"


class AlreadyExists(PenstockError):
    default = "already exists"


class NamespaceAlreadyExists(AlreadyExists):
    default = "namespace already exists"


class TableAlreadyExists(AlreadyExists):
    default = "table already exists"


class ViewAlreadyExists(TableAlreadyExists):
    default = "view already exists"


class IndexAlreadyExists(AlreadyExists):
    default = "index already exists"


class TagAlreadyExists(AlreadyExists):
    default = "tag already exists"


class BranchAlreadyExists(AlreadyExists):
    default = "branch already exists"


class ManifestAlreadyExists(AlreadyExists):
    default = "manifest already exists"


class NamespaceNotEmpty(PenstockError):
    default = "namespace is not empty"


class InvalidTableState(PenstockError):
    default = "the table is not in a state for this"


class ViewIsNoTable(InvalidTableState):
    default = "it is a view, not a table"


class NotALanceTable(InvalidTableState):
    default = "it is an Iceberg table, not a Lance table"


class VanishedFile(InvalidTableState):
    default = "a file of the table is gone"


class TableInUse(PenstockError):
    default = "the table is in use"


class SchemaMismatch(PenstockError):
    default = "the data does not fit the table"


class TooManyRequests(PenstockError):
    default = "the server has enough to do"


class ConcurrentCommit(PenstockError):
    default = "another commit was first"


class RequirementFailed(ConcurrentCommit):
    default = "a requirement does not hold"


class LeaseLost(ConcurrentCommit):
    default = "the lease is lost"


class NotAuthenticated(PenstockError):
    default = "credentials are missing or not valid"


class Forbidden(PenstockError):
    default = "not allowed"


class NeedsConsent(PenstockError):
    default = "the view needs consent"


class Unprocessable(PenstockError):
    default = "the request contradicts itself"


class KeyMismatch(Unprocessable):
    default = "the idempotency key was used for another request"


class KeyUsed(PenstockError):
    default = "the idempotency key was used already"


class OutcomeUnknown(PenstockError):
    default = "the outcome is not known"


class JobFailed(PenstockError):
    default = "the job failed"


class JobCanceled(JobFailed):
    default = "the job was canceled"


class Unavailable(PenstockError):
    default = "temporarily unavailable"


class TimedOut(Unavailable):
    default = "the time is up"


class DamagedFile(Unavailable):
    default = "a file of the table is damaged"


class DatabaseMismatch(PenstockError):
    default = "the database does not belong to this release"
