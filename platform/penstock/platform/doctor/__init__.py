"""Checks of an installation for `penstock doctor`: packages, jars, folders, definitions and services."""

from penstock.platform.doctor.definition_checks import check_definitions
from penstock.platform.doctor.finding import DoctorFinding
from penstock.platform.doctor.installation_checks import check_installation
from penstock.platform.doctor.service_checks import check_services

__all__ = ["DoctorFinding", "check_definitions", "check_installation", "check_services"]
