"""What leaves a store as a whole and comes back: backups and restored stores, exports and imports."""
