output "brokers" {
  description = "Where clients connect first, host:port each."
  value = sort(split(",",
    var.authentication == "iam"
    ? aws_msk_cluster.this.bootstrap_brokers_sasl_iam
    : aws_msk_cluster.this.bootstrap_brokers_sasl_scram
  ))
}

output "security" {
  description = "How clients talk to the brokers."
  value = {
    protocol  = "SASL_SSL"
    mechanism = var.authentication == "iam" ? "AWS_MSK_IAM" : "SCRAM-SHA-512"
    ca        = ""
  }
}

output "cluster_arn" {
  description = "The cluster, for policies."
  value       = aws_msk_cluster.this.arn
}
