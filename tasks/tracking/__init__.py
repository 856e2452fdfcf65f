"""What MLflow gets of finished runs."""
