"""The programs of the local environment, as Terraform starts and stops them.

`make up` restarts its programs by itself. Here Terraform decides what runs, so an exited program stays down. That
is drift: a plan shows it, and an apply starts the program.
"""
