output "brokers" {
  description = "Where clients connect first, host:port each, inside the stack's network."
  value       = [for node in [1, 2, 3] : "kafka-${node}:9092"]
  depends_on  = [terraform_data.running]
}

output "security" {
  description = "How clients talk to the brokers."
  value       = { protocol = "PLAINTEXT", mechanism = "", ca = "" }
}

output "master" {
  description = "What a session connects to, inside the stack's network."
  value       = "spark://spark-master:7077"
  depends_on  = [terraform_data.running]
}

output "warehouse" {
  description = "Where tables live, inside the containers."
  value       = "/var/lib/penstock/warehouse"
}

output "control_store" {
  description = "Where the control store is, and the file that holds its password."
  value       = { url = "postgresql://penstock@postgres:5432/penstock", secret = "${var.directory}/secrets/control_store" }
}
