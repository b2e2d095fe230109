/**
 * The names that have a meaning in a request of each chat protocol, place by place: those that the gateway reads, and
 * those that upstreams read for model, price, framing, routing or output. A similar name is refused, because an
 * upstream may take it for the real one. Names in no list pass.
 */
import { chosen, type NameSet, place } from '../../core/json/names.ts'
import { toSnakeName } from '../../core/json/snake-case.ts'

/** Top-level fields by which aggregators and servers choose model, price or route, whatever the protocol. */
const OF_ROUTERS = `models provider providers route routing transforms plugins preset fallbacks fallback_models
  extra_body extra_headers extra_query extra_params api_base base_url api_key chat_template chat_template_kwargs`
/** Settings that many upstreams take beyond the protocol's own. */
const OF_SERVERS = `top_k top_a min_p best_of min_tokens max_new_tokens num_predict repetition_penalty ignore_eos
  use_beam_search length_penalty stop_token_ids skip_special_tokens guided_json guided_regex guided_choice
  guided_grammar structured_outputs include_reasoning enable_thinking thinking_budget enable_search search_options
  search_parameters web_search web_plugin priority usage stream_usage`

const cacheControl = place('type ttl')
const streamOptions = place('include_usage include_obfuscation')
const location = place('type city region country timezone')
const searchLocation = place('type city region country timezone', { approximate: location })
const namedFunction = place('type', { function: place('name') })

const chatPart = place('type text refusal thinking signature data role detail', {
  image_url: place('url detail'),
  video_url: place('url'),
  audio_url: place('url'),
  input_audio: place('data format'),
  file: place('file_id file_data filename'),
  cache_control: cacheControl,
})
const calledFunction = place('name', chosen('arguments'))
const chatMessage = place('role name refusal tool_call_id reasoning reasoning_content prefix partial', {
  ...chosen('annotations'),
  content: chatPart,
  tool_calls: place('id index type', {
    ...chosen('extra_content'),
    function: calledFunction,
    custom: place('name', chosen('input')),
  }),
  function_call: calledFunction,
  thinking_blocks: chatPart,
  images: chatPart,
  audio: place('id'),
  cache_control: cacheControl,
})
const offeredFunction = place('name description strict', {
  ...chosen('parameters'),
  cache_control: cacheControl,
})

export const CHAT_COMPLETIONS_NAMES: NameSet = place(
  `model stream max_tokens max_completion_tokens temperature top_p n stop seed frequency_penalty presence_penalty
  logprobs top_logprobs parallel_tool_calls user safety_identifier prompt_cache_key prompt_cache_retention
  reasoning_effort verbosity service_tier store modalities ${OF_ROUTERS} ${OF_SERVERS}`,
  {
    ...chosen('metadata logit_bias guided_json chat_template_kwargs'),
    messages: chatMessage,
    stream_options: streamOptions,
    usage: place('include'),
    tools: place('type name description strict search_context_size filters', {
      ...chosen('parameters input_schema'),
      function: offeredFunction,
      custom: place('name description format'),
      user_location: searchLocation,
      cache_control: cacheControl,
    }),
    tool_choice: place('type name', {
      function: place('name'),
      custom: place('name'),
      allowed_tools: place('mode', { tools: namedFunction }),
    }),
    functions: offeredFunction,
    function_call: place('name'),
    response_format: place('type', { json_schema: place('name description strict', chosen('schema')) }),
    audio: place('voice format'),
    prediction: place('type content'),
    reasoning: place('effort max_tokens summary enabled exclude'),
    thinking: place('type budget_tokens display'),
    web_search_options: place('search_context_size', { user_location: searchLocation }),
  },
)

const responsesPart = place('type text refusal image_url detail file_id file_data file_url filename', {
  input_audio: place('data format'),
})

const responsesTool = place(
  `type name description strict format filters search_context_size vector_store_ids max_num_results
  ranking_options server_label server_url connector_id authorization headers allowed_tools require_approval
  server_description container background input_fidelity input_image_mask model moderation output_compression
  output_format partial_images quality size action n display_height display_width environment file_ids execution
  defer_loading`,
  { ...chosen('parameters input_schema'), user_location: location },
)

const responsesInput = place(
  `type role id status phase call_id name namespace encrypted_content queries action actions
  code container_id outputs server_label error approval_request_id approve reason result file_id operation`,
  {
    ...chosen('arguments input results annotations'),
    content: responsesPart,
    output: responsesPart,
    summary: place('type text'),
    tools: responsesTool,
  },
)

/** Of a new conversation and of new items. */
export const CONVERSATION_NAMES: NameSet = place('model', {
  ...chosen('metadata'),
  items: responsesInput,
})

export const RESPONSES_NAMES: NameSet = place(
  `model instructions stream max_output_tokens max_tool_calls max_tokens temperature top_p n stop seed
  frequency_penalty presence_penalty top_logprobs parallel_tool_calls previous_response_id background callback_url store include
  truncation context_management user safety_identifier prompt_cache_key prompt_cache_retention service_tier
  ${OF_ROUTERS} ${OF_SERVERS}`,
  {
    ...chosen('metadata guided_json chat_template_kwargs'),
    input: responsesInput,
    stream_options: streamOptions,
    reasoning: place('effort summary generate_summary'),
    text: place('verbosity', { format: place('type name description strict', chosen('schema')) }),
    tools: responsesTool,
    tool_choice: place('type name mode server_label', { tools: place('type name server_label') }),
    conversation: place('id'),
    prompt: place('id version', chosen('variables')),
  },
)

const sourceOfBlock = place('type media_type data url file_id content')
const citations = place('type enabled')
const messagesTool = place(
  `type name description strict max_uses allowed_domains blocked_domains max_content_tokens display_width_px
  display_height_px display_number enable_zoom max_characters defer_loading allowed_callers eager_input_streaming`,
  {
    ...chosen('input_schema input_examples'),
    user_location: location,
    cache_control: cacheControl,
    citations,
  },
)
const changedTool = place('type name server_name', { definition: messagesTool })
const blockNames = `type text title context id name tool_use_id is_error thinking signature data caller`
const insideBlock = {
  ...chosen('input'),
  source: sourceOfBlock,
  cache_control: cacheControl,
  citations,
}
const block = place(blockNames, {
  ...insideBlock,
  content: place(blockNames, insideBlock),
  tool: changedTool,
  tool_changes: place('type', { tool: changedTool }),
})

export const MESSAGES_NAMES: NameSet = place(
  `model max_tokens stream temperature top_p top_k stop_sequences service_tier inference_geo speed compaction betas n
  fallback_credit_token ${OF_ROUTERS}`,
  {
    messages: place('role clear_at', { content: block, output_config: place('effort') }),
    system: block,
    ...chosen('metadata'),
    thinking: place('type budget_tokens display'),
    tools: messagesTool,
    tool_choice: place('type name disable_parallel_tool_use'),
    output_config: place('effort', { format: place('type', chosen('schema')) }),
    output_format: place('type', chosen('schema')),
    container: place('id skills'),
    context_management: place('edits'),
    mcp_servers: place('type name url authorization_token tool_configuration'),
    cache_control: cacheControl,
    thread: place('type previous_message_id'),
    diagnostics: place('previous_message_id'),
    billing_policy: place('type bill_to'),
  },
)

/** Returns the names in both cases: this vendor also accepts snake case. */
function eitherCase(names: string, inside: Readonly<Record<string, NameSet>> = {}): NameSet {
  const under = Object.entries(inside).flatMap(([name, at]) => [
    [name, at] as const,
    [toSnakeName(name), at] as const,
  ])
  return place(`${names} ${toSnakeName(names)}`, Object.fromEntries(under))
}

const blob = eitherCase('mimeType data displayName fileUri')
const contentPart = eitherCase('text thought thoughtSignature mediaResolution', {
  ...chosen('partMetadata'),
  inlineData: blob,
  fileData: blob,
  functionCall: eitherCase('id name', chosen('args')),
  functionResponse: eitherCase('id name willContinue scheduling parts', chosen('response')),
  executableCode: eitherCase('language code'),
  codeExecutionResult: eitherCase('outcome output'),
  videoMetadata: eitherCase('startOffset endOffset fps'),
})
const content = eitherCase('role', { parts: contentPart })
const declaration = eitherCase(
  'name description behavior',
  chosen('parameters parametersJsonSchema response responseJsonSchema'),
)

export const GENERATE_CONTENT_NAMES: NameSet = eitherCase('model stream cachedContent store serviceTier', {
  ...chosen('labels'),
  contents: content,
  systemInstruction: content,
  generationConfig: eitherCase(
    `candidateCount maxOutputTokens temperature topP topK seed stopSequences presencePenalty frequencyPenalty
    responseMimeType responseModalities responseLogprobs logprobs mediaResolution
    enableEnhancedCivicAnswers audioTimestamp speechConfig routingConfig modelSelectionConfig modelConfig`,
    {
      ...chosen('responseSchema responseJsonSchema'),
      thinkingConfig: eitherCase('includeThoughts thinkingBudget thinkingLevel'),
      imageConfig: eitherCase('aspectRatio imageSize personGeneration imageOutputOptions'),
    },
  ),
  tools: eitherCase(
    'googleSearch googleMaps urlContext codeExecution fileSearch mcpServers enterpriseWebSearch retrieval',
    {
      functionDeclarations: declaration,
      googleSearchRetrieval: eitherCase('', {
        dynamicRetrievalConfig: eitherCase('mode dynamicThreshold'),
      }),
      computerUse: eitherCase('environment excludedPredefinedFunctions'),
    },
  ),
  toolConfig: eitherCase('retrievalConfig includeServerSideToolInvocations', {
    functionCallingConfig: eitherCase('mode allowedFunctionNames'),
  }),
  safetySettings: eitherCase('category threshold method'),
})

/** A request to count tokens: only contents, or a whole request within another. */
export const COUNT_CONTENT_TOKENS_NAMES: NameSet = place('', {
  ...Object.fromEntries(GENERATE_CONTENT_NAMES.known),
  generateContentRequest: GENERATE_CONTENT_NAMES,
  generate_content_request: GENERATE_CONTENT_NAMES,
})
