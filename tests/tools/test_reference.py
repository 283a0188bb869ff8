"""docs/reference says what the code says."""

import pytest

import reference


@pytest.mark.parametrize("page", reference.PAGES)
def test_the_page_is_up_to_date(page: str) -> None:
    written = (reference.FOLDER / page).read_text(encoding="utf-8")
    assert written == reference.PAGES[page](), "run `make reference`"
