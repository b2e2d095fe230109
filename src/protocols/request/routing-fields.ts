/**
 * Top-level fields by which the APIs of providers, aggregators and servers choose model, route, credentials or price
 * besides the request's own model. All of them are refused for every channel: a call may go to any of several.
 */
import { PROVIDERS } from '../../channels/providers/presets.ts'

/** Those of software between client and provider, by its name. */
const OF_PROXIES: Readonly<Record<string, readonly string[]>> = {
  sdk: ['extra_body', 'extra_headers', 'extra_query', 'extra_params'],
  litellm: [
    ...['api_base', 'base_url', 'api_key', 'api_version', 'api_type', 'headers', 'organization'],
    ...['custom_llm_provider', 'deployment_id', 'model_list', 'model_info', 'user_config', 'litellm_params'],
    ...['litellm_metadata', 'router_settings_override', 'secret_fields', 'proxy_server_request', 'tags'],
    ...['fallback_models', 'default_fallbacks', 'context_window_fallbacks', 'content_policy_fallbacks'],
    ...['context_window_fallback_dict', 'cache', 'caching', 'mock_response', 'mock_tool_calls', 'guardrails'],
    ...['input_cost_per_token', 'output_cost_per_token', 'input_cost_per_second', 'output_cost_per_second'],
    ...['num_retries', 'max_retries', 'prompt_id', 'prompt_variables', 'ssl_verify', 'azure_ad_token'],
    ...['vertex_project', 'vertex_location', 'vertex_credentials', 'aws_access_key_id', 'aws_region_name'],
    ...[
      'aws_secret_access_key',
      'aws_session_token',
      'aws_role_name',
      'aws_session_name',
      'aws_profile_name',
    ],
    ...['aws_bedrock_runtime_endpoint', 'aws_sts_endpoint', 'aws_web_identity_token'],
  ],
  portkey: ['config', 'virtual_key', 'targets', 'strategy', 'override_params'],
  vercel: ['providers', 'providerOptions', 'provider_options', 'gateway'],
  requesty: ['routing', 'requesty'],
  vllm: ['kv_transfer_params', 'priority', 'best_of', 'use_beam_search', 'chat_template', 'vllm_xargs'],
  sglang: [
    ...['lora_path', 'session_params', 'custom_logit_processor', 'data_parallel_rank'],
    ...['bootstrap_host', 'bootstrap_port', 'bootstrap_room'],
  ],
}

/** Fields by which APIs without a preset here switch on work, by the vendor. */
const OF_OTHER_APIS: Readonly<Record<string, readonly string[]>> = {
  baidu: ['web_search'],
  hunyuan: ['enable_enhancement', 'force_search_enhancement', 'enable_deep_search'],
  cohere: ['connectors'],
  venice: ['venice_parameters'],
  others: ['web_plugin', 'webSearch', 'enable_web_search', 'use_search', 'online'],
}

/** Top-level fields by which a provider's API chooses model, route, credentials or price. */
export const ROUTING_FIELDS: readonly string[] = [
  ...Object.values(OF_PROXIES).flat(),
  ...Object.values(PROVIDERS).flatMap(({ routingFields = [] }) => routingFields),
]

/**
 * Top-level fields by which a provider's API switches on searches and other work that it charges for. What has a price is
 * offered as a tool.
 */
export const SERVER_FEATURES: readonly string[] = [
  ...Object.values(OF_OTHER_APIS).flat(),
  ...Object.values(PROVIDERS).flatMap(({ featureFields = [] }) => featureFields),
]
