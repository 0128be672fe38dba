"""What is watched beside the verdicts: what may undo a drop, walls, traps, wrong drops, and pages out of reach."""
