output "directory" {
  description = "The folder, once it is there."
  value       = var.directory
  depends_on  = [terraform_data.this]
}
