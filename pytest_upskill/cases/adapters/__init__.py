"""Case files of other tools: one module for each tool that is known."""
