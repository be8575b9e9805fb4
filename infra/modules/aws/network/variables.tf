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
  description = "AWS services that are reached inside the network, and what may be asked of them there."
  type        = map(list(string))
  default = {
    "ecr.api" = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetAuthorizationToken", "ecr:GetDownloadUrlForLayer"]
    "ecr.dkr" = ["ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]
    "emr-serverless" = [
      "emr-serverless:CancelJobRun",
      "emr-serverless:GetApplication",
      "emr-serverless:GetJobRun",
      "emr-serverless:ListJobRuns",
      "emr-serverless:StartApplication",
      "emr-serverless:StartJobRun",
    ]
    "kms"            = ["kms:Decrypt", "kms:GenerateDataKey"]
    "logs"           = ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"]
    "secretsmanager" = ["secretsmanager:GetSecretValue"]
    "sts"            = ["sts:AssumeRole", "sts:GetCallerIdentity"]
  }
}

variable "bucket_arns" {
  description = "Buckets that may be reached through the network's way to S3, beside the one that images' layers come from."
  type        = list(string)
}

variable "flow_log_group_arn" {
  description = "Log group that takes the network's flow logs."
  type        = string
}

variable "flow_log_role_arn" {
  description = "Role that may write the flow logs."
  type        = string
}

variable "services" {
  description = "Members of the network, and the ports that they may reach besides AWS endpoints."
  type        = map(set(number))
}

variable "listeners" {
  description = "Services that others call: on which ports, and which services alone."
  type        = map(object({ first = number, last = number, callers = set(string) }))
  default     = {}
}
