"""The commands of this project."""
