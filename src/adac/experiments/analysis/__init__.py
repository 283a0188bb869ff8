"""From stored results to statistics, tables, figures and the report page."""
