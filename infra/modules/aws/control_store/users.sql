-- The services' own users and Dagster's database, made once by keeper; who is there already gets the password anew.
-- No password is on a command line: psql reads them from its environment.
--   PENSTOCK_PASSWORD=… DAGSTER_PASSWORD=… psql --host … --username keeper --dbname penstock --file users.sql
\set ON_ERROR_STOP on
\getenv penstock PENSTOCK_PASSWORD
\getenv dagster DAGSTER_PASSWORD
SELECT format('CREATE ROLE %I LOGIN', name) FROM (VALUES ('penstock'), ('dagster')) AS wanted (name)
  WHERE name NOT IN (SELECT rolname FROM pg_roles) \gexec
ALTER ROLE penstock PASSWORD :'penstock';
ALTER ROLE dagster PASSWORD :'dagster';
GRANT penstock, dagster TO CURRENT_USER;
ALTER DATABASE penstock OWNER TO penstock;
SELECT 'CREATE DATABASE dagster OWNER dagster'
  WHERE 'dagster' NOT IN (SELECT datname FROM pg_database) \gexec
REVOKE CONNECT ON DATABASE penstock, dagster FROM PUBLIC;
