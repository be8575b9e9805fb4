"""The stream host as a process of the platform: composed from settings, with metrics, health and alerts."""
