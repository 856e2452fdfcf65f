-- The databases of the servers, for psql: one each for Prefect, MLflow (its users too) and Optuna's studies.
SELECT format('CREATE DATABASE %I', name)
FROM (VALUES ('prefect'), ('mlflow'), ('optuna')) AS wanted (name)
WHERE name NOT IN (SELECT datname FROM pg_database) \gexec
