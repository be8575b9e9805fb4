"""The programs of the local environment, as Terraform starts and ends them.

`make up` keeps its programs alive by itself. Here Terraform decides what runs, so a program that ended
stays down: that is drift, a plan shows it and an apply mends it.
"""
