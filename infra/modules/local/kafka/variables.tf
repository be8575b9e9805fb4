variable "directory" {
  description = "Folder that holds the brokers' data, logs and records; it is removed with the cluster."
  type        = string
}

variable "jars" {
  description = "Folder of the brokers' jars; missing jars are downloaded."
  type        = string
}

variable "python" {
  description = "The Python that penstock is installed in."
  type        = string
}

variable "first_port" {
  description = "Broker N listens on this port plus N, its controller ten higher."
  type        = number
}

variable "brokers" {
  description = "How many brokers; three of them vote on metadata."
  type        = number

  validation {
    condition     = var.brokers >= 3 && var.brokers <= 9 && floor(var.brokers) == var.brokers
    error_message = "Replication 3 needs at least three brokers; nine are the most."
  }
}

variable "secured" {
  description = "Whether clients must log in over TLS and may do only what they are allowed; decided once."
  type        = bool
}

variable "heap_mb" {
  description = "Heap of a broker, in MB."
  type        = number

  validation {
    condition     = var.heap_mb >= 128
    error_message = "A broker needs a heap of 128 MB at least."
  }
}
