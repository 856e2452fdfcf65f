"""The builder of the documentation: `python -m infra.docs` (`make docs`) makes the site of `docs/`, without a network.

Three kinds of pages: written by hand (`docs/*.md`); generated and committed, from the recorded evidence (`record`);
generated and only built, from the code (`reference`). `site` puts them together and has Zensical make HTML of them.
"""
