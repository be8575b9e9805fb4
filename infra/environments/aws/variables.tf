variable "name" {
  description = "The environment's name, and the prefix of all names in it."
  type        = string
  default     = "penstock"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{2,20}$", var.name))
    error_message = "Use 3 to 21 small letters, digits and hyphens, beginning with a letter."
  }
}

variable "region" {
  description = "Where it is built."
  type        = string
  default     = "eu-west-1"
}

variable "max_retries" {
  description = "How often a call to AWS is tried again."
  type        = number
  default     = 25
}

variable "zones" {
  description = "Letters of the region's zones that are used."
  type        = list(string)
  default     = ["a", "b", "c"]
}

variable "brokers" {
  description = "How many Kafka brokers: a multiple of the number of zones."
  type        = number
  default     = 3
}

variable "broker_size" {
  description = "Size of a Kafka broker."
  type        = string
  default     = "kafka.m7g.large"
}

variable "broker_storage_gb" {
  description = "Disk of a Kafka broker, in GB."
  type        = number
  default     = 200
}

variable "kafka_authentication" {
  description = "Client authentication: scram, or iam (no passwords). The platform's services only support scram."
  type        = string
  default     = "scram"
}

variable "kafka_principals" {
  description = "Kafka's users when clients log in by SCRAM."
  type        = set(string)
  default     = ["ingestion", "host", "topics"]
}

variable "secrets_filled" {
  description = "Whether the users' secrets have values; only then can they be given to Kafka, and services start (see ../README.md)."
  type        = bool
  default     = false
}

variable "schema_registry" {
  description = "Address of a Confluent-compatible schema registry; where none is named a folder of the home is one."
  type        = string
  default     = ""
}

variable "workers" {
  description = "Spark executors that are kept warm."
  type        = number
  default     = 2
}

variable "most_workers" {
  description = "Spark executors at most."
  type        = number
  default     = 8
}

variable "control_store_size" {
  description = "Size of the control store's database."
  type        = string
  default     = "db.t4g.medium"
}

variable "protected" {
  description = "Whether data survives: the database refuses to be destroyed, the bucket is kept while it holds anything."
  type        = bool
  default     = true
}

variable "host_master" {
  description = "Where the stream host runs Spark: in its own task, or a cluster's spark://host:port."
  type        = string
  default     = "local[*]"
}

variable "host_cpu" {
  description = "Size of the stream host's task, in CPU units: 1024 are a core."
  type        = number
  default     = 4096
}

variable "host_memory_mb" {
  description = "Memory of the stream host's task, in MB; Fargate takes 8192 to 30720 with four cores."
  type        = number
  default     = 16384
}

variable "host_heap" {
  description = "How much of that Spark's Java machine has; the rest is for Python's workers."
  type        = string
  default     = "6g"
}

variable "image_tag" {
  description = "Which build of our images runs."
  type        = string
}

variable "monthly_usd" {
  description = "Monthly budget in US dollars; exceeding it sends a notification."
  type        = number
  default     = 2000
}

variable "mail" {
  description = "Email address for alarms and budget notifications; empty sends none."
  type        = string
  default     = ""
}
