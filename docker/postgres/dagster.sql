-- Dagster and the control store each keep the version of their tables in one of the same name: a database each.
CREATE DATABASE dagster;
