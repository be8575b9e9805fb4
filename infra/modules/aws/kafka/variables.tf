variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "vpc_id" {
  description = "The network that the brokers live in."
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets, one a zone; brokers are spread over them evenly."
  type        = list(string)
}

variable "client_group_ids" {
  description = "Clients by name and security group that may connect to the brokers."
  type        = map(string)
}

variable "keeper_group_id" {
  description = "Security group of administrators; they authenticate by role, and may read metrics."
  type        = string
}

variable "key_arn" {
  description = "Key that encrypts what the brokers keep."
  type        = string
}

variable "brokers" {
  description = "How many brokers: a multiple of the number of subnets."
  type        = number
  default     = 3

  validation {
    condition     = var.brokers >= 3
    error_message = "Replication 3 needs at least three brokers."
  }
}

variable "kafka_version" {
  description = "Kafka's version as MSK names it; without ZooKeeper, hence .kraft."
  type        = string
  default     = "3.9.x.kraft"

  validation {
    condition     = endswith(var.kafka_version, ".kraft")
    error_message = "Only versions that run without ZooKeeper are supported; their names end in .kraft."
  }
}

variable "instance_type" {
  description = "Size of a broker."
  type        = string
  default     = "kafka.m7g.large"
}

variable "storage_gb" {
  description = "Disk of a broker, in GB. It can grow, never shrink."
  type        = number
  default     = 200
}

variable "authentication" {
  description = "Client authentication: iam or scram."
  type        = string
  default     = "iam"

  validation {
    condition     = contains(["iam", "scram"], var.authentication)
    error_message = "Choose iam or scram."
  }
}

variable "scram_secret_arns" {
  description = "Secrets of SCRAM users that have a value already; they become able to log in."
  type        = list(string)
  default     = []
}

variable "log_group" {
  description = "Log group that takes the brokers' logs."
  type        = string
}
