"""The versions, tags and branches of a table, and its indexes."""

from typing import Self, Unpack
from urllib.parse import quote

from penstock.errors import InvalidRequest
from penstock.sdk.connection.wire import path_of
from penstock.sdk.jobs.options import IndexOptions, read_options
from penstock.sdk.tables.handle import Handle
from penstock.sdk.tables.refs import Branch, Index, Tag, Version, read_index, read_version


class History(Handle):
    """What a table does with versions and indexes."""

    def version(self) -> int:
        """The newest version, or the one that this table was asked for."""
        if self._at is not None:
            return self._at
        body = {"branch": self._branch}
        return int(self._read("version/describe", body)["version"]["version"])

    def versions(self) -> list[Version]:
        """All versions, the newest first."""
        path = path_of("table", self.id, "version/list")
        pages = self._wire.pages(
            lambda token: self._wire.read(
                path, None, params={"descending": True, "branch": self._branch, "page_token": token}
            ),
            "versions",
        )
        return [read_version(each) for page in pages for each in page]

    def at(self, version: int | str) -> Self:
        """This table as it was at a version, or at a tag."""
        if isinstance(version, str):
            tag = self._find_tag(version)
            return type(self)(self._wire, self.id, branch=tag.branch, at=tag.version)
        return type(self)(self._wire, self.id, branch=self._branch, at=version)

    def restore(self, version: int | str) -> Self:
        """Make an old version, or that of a tag, the newest."""
        tag = self._find_tag(version) if isinstance(version, str) else Tag(version, self._branch)
        if tag.branch != self._branch:
            raise InvalidRequest(
                f"tag {version!r} is of {_show_branch(tag.branch)}, and this table is on "
                f"{_show_branch(self._branch)}",
                detail="restore a version of the branch itself",
            )
        self._note("restore", {"version": tag.version, "branch": self._branch})
        return self

    def tags(self) -> dict[str, Tag]:
        path = path_of("table", self.id, "tags/list")
        pages = self._wire.pages(
            lambda token: self._wire.read(path, None, params={"page_token": token}), "tags"
        )
        return {
            name: Tag(each["version"], each.get("branch"))
            for page in pages
            for name, each in page.items()
        }

    def create_tag(self, name: str, version: int | None = None) -> Self:
        """Name a version, the newest one unless it is given."""
        wanted = self.version() if version is None else version
        self._note("tags/create", {"tag": name, "version": wanted, "branch": self._branch})
        return self

    def update_tag(self, name: str, version: int) -> Self:
        self._note("tags/update", {"tag": name, "version": version, "branch": self._branch})
        return self

    def drop_tag(self, name: str) -> Self:
        self._note("tags/delete", {"tag": name})
        return self

    def branches(self) -> dict[str, Branch]:
        path = path_of("table", self.id, "branches/list")
        pages = self._wire.pages(
            lambda token: self._wire.read(path, None, params={"page_token": token}), "branches"
        )
        return {
            name: Branch(each["parentVersion"], each.get("parentBranch"))
            for page in pages
            for name, each in page.items()
        }

    def create_branch(self, name: str, version: int | None = None) -> Self:
        """Make a branch of this version, or of the newest one; returns the table on it."""
        start = self._at if version is None else version
        body = {"name": name, "from_branch": self._branch, "from_version": start}
        self._note("branches/create", body)
        return self.branch(name)

    def branch(self, name: str) -> Self:
        """This table on a branch."""
        return type(self)(self._wire, self.id, branch=name)

    def drop_branch(self, name: str) -> Self:
        self._note("branches/delete", {"name": name})
        return self

    def create_index(self, column: str, index_type: str, **options: Unpack[IndexOptions]) -> Self:
        """Index a column: `IVF_FLAT`, `IVF_PQ` … for vectors, `FTS` for text, `BTREE` … for others.

        Options are those of the type, such as `distance_type`, `num_partitions`, `with_position`.
        """
        told = read_options(options, IndexOptions)
        body = {"column": column, "index_type": index_type, "branch": self._branch, **told}
        self._change("create_index", body)
        return self

    def indexes(self) -> list[Index]:
        body = {"branch": self._branch, "version": self._at}
        path = path_of("table", self.id, "index/list")
        pages = self._wire.pages(
            lambda token: self._wire.read(path, {**body, "page_token": token}), "indexes"
        )
        return [read_index(each) for page in pages for each in page]

    def drop_index(self, name: str) -> Self:
        path = path_of("table", self.id, f"index/{quote(name, safe='')}/drop")
        self._wire.change(path, None, branch=self._branch)
        return self

    def _find_tag(self, name: str) -> Tag:
        told = self._read("tags/version", {"tag": name})
        return Tag(told["version"], told.get("branch"))


def _show_branch(branch: str | None) -> str:
    return f"branch {branch!r}" if branch else "the main branch"
