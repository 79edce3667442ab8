"""What the operating system gives and limits: memory, processors, temporary files, terminals."""
