output "master" {
  description = "What a session connects to."
  value       = "spark://127.0.0.1:${var.first_port}"
  depends_on  = [module.worker]
}

output "secret" {
  description = "File with the secret that jobs need; empty if there is none."
  value       = var.secured ? "${var.directory}/secret" : ""
}
