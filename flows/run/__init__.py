"""Running a plan: the scheduler, the engine, and what becomes of each cell that ended."""
