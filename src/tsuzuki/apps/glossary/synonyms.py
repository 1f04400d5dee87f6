"""Groups of terms that mean the same; a term is in one group at most."""

from collections.abc import Sequence
from itertools import groupby

from tsuzuki.apps.glossary.queries import SQL
from tsuzuki.apps.glossary.records import SynonymGroup, SynonymMember
from tsuzuki.apps.glossary.refusals import BadValue, NotThere, Refused, Taken
from tsuzuki.apps.glossary.terms import checked_term
from tsuzuki.apps.ledger import Ledger


class Synonyms:
    """The groups of one project."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def list(self) -> list[SynonymGroup]:
        """Lists the groups."""
        return [
            SynonymGroup(number, primary, tuple(SynonymMember(*row[2:]) for row in rows))
            for (number, primary), rows in groupby(self._ledger.all("synonyms"), key=lambda row: (row[0], row[1]))
        ]

    def get(self, number: int) -> SynonymGroup:
        """Gives a group."""
        found = next((group for group in self.list() if group.id == number), None)
        if found is None:
            raise NotThere(f"同義語グループが見つかりません / there is no group of synonyms {number}")
        return found

    def add(self, primary: str, members: Sequence[str]) -> SynonymGroup:
        """Makes a group; its primary term is one of its members."""
        texts = list(dict.fromkeys(checked_term(text) for text in members))
        first = checked_term(primary)
        if first not in texts:
            raise BadValue(f"代表用語がメンバーにありません / the primary term {first!r} is no member of the group")
        with self._ledger.writing() as connection:
            for text in texts:
                if connection.execute(SQL["synonym_member_named"], (text,)).fetchone() is not None:
                    raise _taken(text)
            number = int(connection.execute(SQL["synonym_group_add"], (first,)).lastrowid or 0)
            connection.executemany(SQL["synonym_member_add"], [(number, text) for text in texts])
        return self.get(number)

    def rename(self, number: int, primary: str) -> SynonymGroup:
        """Lets another member be the primary term."""
        group, first = self.get(number), checked_term(primary)
        if first not in {member.term_text for member in group.members}:
            raise Refused(f"代表用語がメンバーにありません / {first!r} is no member of the group")
        with self._ledger.writing() as connection:
            connection.execute(SQL["synonym_group_primary"], (first, number))
        return self.get(number)

    def remove(self, number: int) -> None:
        """Removes a group."""
        self.get(number)
        with self._ledger.writing() as connection:
            connection.execute(SQL["synonym_group_remove"], (number,))

    def join(self, number: int, text: str) -> SynonymGroup:
        """Adds a member to a group."""
        self.get(number)
        clean = checked_term(text)
        with self._ledger.writing() as connection:
            if connection.execute(SQL["synonym_member_named"], (clean,)).fetchone() is not None:
                raise _taken(clean)
            connection.execute(SQL["synonym_member_add"], (number, clean))
        return self.get(number)

    def leave(self, number: int, member: int) -> SynonymGroup | None:
        """Removes a member; without its primary term there is no group any more."""
        group = self.get(number)
        with self._ledger.writing() as connection:
            row = connection.execute(SQL["synonym_member"], (member, number)).fetchone()
            if row is None:
                raise NotThere(f"メンバーが見つかりません / the group has no member {member}")
            if row[0] == group.primary_term_text:
                connection.execute(SQL["synonym_group_remove"], (number,))
                return None
            connection.execute(SQL["synonym_member_remove"], (member,))
        return self.get(number)


def _taken(text: str) -> Taken:
    return Taken(f"すでに同義語グループにあります / a term is in one group only, and this is in one: {text!r}")
