output "brokers" {
  description = "Where clients connect first, host:port each."
  value       = [for node in range(1, var.brokers + 1) : "127.0.0.1:${var.first_port + node}"]
  depends_on  = [module.broker]
}

output "security" {
  description = "How clients talk to the brokers."
  value = {
    protocol  = var.secured ? "SASL_SSL" : "PLAINTEXT"
    mechanism = var.secured ? "SCRAM-SHA-512" : ""
    ca        = var.secured ? "${var.directory}/certificates/ca.pem" : ""
    secrets   = { for user in local.users : user => "${var.directory}/secrets/${user}" if var.secured }
  }
  depends_on = [terraform_data.users]
}
