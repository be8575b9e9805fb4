terraform {
  required_version = ">= 1.6"

  backend "local" {
    path = "../../../.penstock/environments/docker/terraform.tfstate"
  }
}
