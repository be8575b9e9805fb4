output "name" {
  description = "The budget's name."
  value       = aws_budgets_budget.this.name
}
