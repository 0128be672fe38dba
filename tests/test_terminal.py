"""How commands print tables, and how they end."""

import pytest

from dedup.errors import IndexUnavailableError, SettingsError
from dedup.scrapy.commands import terminal
from dedup.scrapy.commands.terminal import finish, print_table, working


def failing(error: BaseException) -> int:
    raise error


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (SettingsError("A is 7"), 2, "try: A is 7\n"),
        (IndexUnavailableError("it is away"), 3, "try: it is away\n"),
        (KeyboardInterrupt(), 130, "try: interrupted\n"),
    ],
)
def test_an_error_is_one_line_and_an_exit_status(
    error: BaseException, status: int, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert finish("try", lambda: failing(error)) == status
    assert capsys.readouterr() == ("", line)


def test_work_that_ends_well_has_its_own_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert finish("try", lambda: 1) == 1
    assert capsys.readouterr() == ("", "")


def test_an_error_of_ours_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        finish("try", lambda: 1 // 0)


def test_a_table_tells_how_many_rows_are_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["pages", "host"], [[1_200, "[red]a.example"], [7, "b.example"]], of=1_002)
    assert capsys.readouterr().out.splitlines() == [
        "",
        "pages  host",
        "1,200  [red]a.example",
        "    7  b.example",
        "... and 1,000 more",
    ]


def test_a_table_of_numbers_marks_the_settings_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(["k", "recall"], [[5, 0.5], [6, 0.75]], gap=False, starred=lambda row: row[0] == 6)
    assert capsys.readouterr().out.splitlines() == ["   k  recall", "   5   0.500", "*  6   0.750"]


def test_progress_in_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    for every, lines in ((0.0, ["Judging: 25%, 50 pages, ", "Judging: 100%, 200 pages, "]), (1e9, [])):
        monkeypatch.setattr(terminal, "LINE_EVERY", every)
        with working("Judging", 200) as advance:
            advance(50, 50)
            advance(200, 200)
        told = capsys.readouterr().err.splitlines()
        assert [line.rpartition(" ")[0] + " " for line in told] == lines
