terraform {
  required_version = ">= 1.6"

  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }

  # Completed by backend.hcl, which names bucket, key, region and lock (see ../README.md).
  backend "s3" {}
}

provider "aws" {
  region      = var.region
  max_retries = var.max_retries

  default_tags {
    tags = { environment = var.name, project = "penstock" }
  }
}
