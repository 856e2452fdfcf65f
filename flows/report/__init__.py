"""The report that people pass on: one HTML file that needs no network, from recorded evidence and local runs.

It answers in this order: which representation to use, how sure that is, what it costs, what the papers claimed, and how
each number was made. `page.write` makes it; a file here is a chapter or a thing that all chapters share (`tables`,
`style`, `charts`).
"""
