"""Commands around the package, run from the project's root as `python -m scripts.FOLDER.NAME`."""
