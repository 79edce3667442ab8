"""Hold the parts of `xclass.vw`: the run behind a Workspace, its options, and the types that VW numbers."""
