"""The columns of the verifier audit: whether the verdicts can be trusted."""

from collections.abc import Mapping
from dataclasses import dataclass

from trainer.comparison.reports.formats import number
from trainer.comparison.reports.tables import Column, Table, TableCell, table_of
from trainer.comparison.reports.verifier_audit import Audit


@dataclass(frozen=True)
class AuditRow:
    """One variant's audit."""

    variant: str
    audit: Audit


@dataclass(frozen=True)
class DisagreementRow:
    """The shares of one variant's completions on which a pair of rewards disagrees."""

    variant: str
    pair: str
    right_unpaid: float
    wrong_paid: float


def _killed(row: AuditRow) -> TableCell:
    return TableCell(", ".join(f"{name} {share:.4f}" for name, share in row.audit.frac_killed.items()) or "0")


AUDIT: list[Column[AuditRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("completions", lambda row: TableCell(str(row.audit.completions))),
    Column("unjudged", lambda row: TableCell(number(row.audit.frac_unjudged))),
    Column("cut off at the length limit", lambda row: TableCell(number(row.audit.frac_truncated))),
    Column("judge cut off", _killed, "while training"),
    Column("length and right", lambda row: TableCell(number(row.audit.length_correlation, 2)), "Spearman’s ρ"),
]

DISAGREEMENT: list[Column[DisagreementRow]] = [
    Column("variant", lambda row: TableCell(row.variant)),
    Column("rewards", lambda row: TableCell(row.pair)),
    Column("right, second pays nothing", lambda row: TableCell(number(row.right_unpaid))),
    Column("wrong, second pays", lambda row: TableCell(number(row.wrong_paid))),
]


def audit_table(audits: Mapping[str, Audit]) -> Table:
    """One row a variant."""
    rows = [AuditRow(name, audit) for name, audit in audits.items()]
    return table_of("Verifier audit", AUDIT, rows, "Of the last evaluations' completions.")


def disagreement_table(audits: Mapping[str, Audit]) -> Table | None:
    """One row a pair of rewards; ``None`` where there is a single reward."""
    rows = [
        DisagreementRow(name, pair, *shares)
        for name, audit in audits.items()
        for pair, shares in audit.disagreement.items()
    ]
    return table_of("Where rewards disagree", DISAGREEMENT, rows) if rows else None
