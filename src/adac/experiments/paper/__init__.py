"""What the ADAC paper reports and nothing else needs."""
