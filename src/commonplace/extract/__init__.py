"""What a text says, found without a model: names, dates and facts. It knows no store and no other text."""
