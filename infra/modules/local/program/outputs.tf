output "name" {
  description = "The program's name, once it runs."
  value       = var.name
  depends_on  = [terraform_data.running]
}
