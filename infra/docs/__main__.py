"""Make the documentation: `python -m infra.docs`.

With `pages` it writes anew the committed pages that are generated, with `notebooks` it runs these and stores
what they show.
"""

import sys
import time

from infra.docs import record

if sys.argv[1:] == ["pages"]:
    from infra.docs import site

    record.write()
    site.LLMS.write_text(site.llms(record.DOCS, "docs/"), "utf-8")
elif sys.argv[1:2] == ["picture"] and len(sys.argv) == 4:
    from pathlib import Path

    from infra.docs import gallery

    gallery.write(sys.argv[2], Path(sys.argv[3]))
elif sys.argv[1:] == ["notebooks"]:
    import os
    import tempfile

    from infra.docs import notebooks

    with tempfile.TemporaryDirectory() as folder:
        os.environ["TEXTBENCH_HOME"] = folder
        os.chdir(folder)
        for path in notebooks.NOTEBOOKS:
            notebooks.store(path)
elif sys.argv[1:]:
    raise SystemExit(
        f"infra.docs takes nothing, pages, notebooks, or picture NAME FILE; got {' '.join(sys.argv[1:])}"
    )
else:
    from infra.docs import site

    if site.LLMS.read_text("utf-8") != site.llms(record.DOCS, "docs/"):
        raise SystemExit("llms.txt does not list the pages as they are; `make pages` writes it anew.")
    start = time.monotonic()
    if old := record.stale():
        raise SystemExit("\n".join([*old, "`make pages` writes them anew."]))
    print(f"{site.build()}/index.html, {time.monotonic() - start:.0f} s")
