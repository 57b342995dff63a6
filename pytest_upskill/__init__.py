"""pytest for agent skills."""
