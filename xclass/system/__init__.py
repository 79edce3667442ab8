"""Query and use the operating system: memory, processors, temporary files and terminals."""
