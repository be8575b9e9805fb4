variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "cidr" {
  description = "The network's address range; private, at most /20, so that each zone gets a /24 or more."
  type        = string
  default     = "10.40.0.0/16"

  validation {
    condition     = can(cidrnetmask(var.cidr)) && tonumber(split("/", var.cidr)[1]) <= 20
    error_message = "The range must be an IPv4 CIDR of /20 or larger, such as 10.40.0.0/16."
  }
}

variable "zones" {
  description = "Availability zones, one private subnet each; Kafka with replication 3 wants three."
  type        = list(string)

  validation {
    condition     = length(var.zones) >= 2 && length(distinct(var.zones)) == length(var.zones)
    error_message = "Name at least two zones, each once."
  }
}

variable "endpoints" {
  description = "AWS services that are reached inside the network, by the last part of their endpoint's name."
  type        = set(string)
  default     = ["ecr.api", "ecr.dkr", "emr-serverless", "kms", "logs", "monitoring", "secretsmanager", "sts"]
}

variable "flow_log_group_arn" {
  description = "Log group that takes the network's flow logs."
  type        = string
}

variable "flow_log_role_arn" {
  description = "Role that may write the flow logs."
  type        = string
}
