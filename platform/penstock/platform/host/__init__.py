"""The stream host as a process of the platform: composed from settings, seen from outside."""
