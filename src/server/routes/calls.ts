/** Routes that a key opens and whose answer comes at once: chat, models, knowledge bases, call log, account. */
import { balance } from '../../../pipelines/accounts/balance.ts'
import { billingSubscription, billingUsage, creditGrants } from '../../../pipelines/accounts/billing.ts'
import { keyUsage } from '../../../pipelines/accounts/key-usage.ts'
import type { ModelsDeps } from '../../../pipelines/accounts/model-lists.ts'
import {
  listContentModels,
  listModels,
  listPublicModels,
  showContentModel,
  showModel,
} from '../../../pipelines/accounts/models.ts'
import { usage } from '../../../pipelines/accounts/usage.ts'
import { listLogs, showLog, sumLogs } from '../../../pipelines/call-log/logs.ts'
import { chat } from '../../../pipelines/chat/chat.ts'
import { countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { passCall } from '../../../pipelines/chat/pass-call.ts'
import { openResponseSocket } from '../../../pipelines/chat/response-socket.ts'
import {
  addConversationItems,
  beginConversation,
  changeConversation,
  deleteConversation,
  deleteConversationItem,
  listConversationItems,
  showConversation,
  showConversationItem,
} from '../../../pipelines/chat/stored/conversations.ts'
import {
  cancelResponse,
  deleteResponse,
  listResponseInput,
  showResponse,
} from '../../../pipelines/chat/stored/responses.ts'
import { MCP_MAX_BODY_BYTES, type McpDeps, mcp } from '../../../pipelines/knowledge/mcp.ts'
import {
  listBacklinks,
  listBases,
  listByTag,
  listTags,
  readPage,
  readPages,
  searchWiki,
  showSource,
} from '../../../pipelines/knowledge/wiki.ts'
import { findCompactingAdapter } from '../../channels/chat/registry.ts'
import type { CallLog, CallSummaries } from '../../clickhouse/call-log.ts'
import { MAX_BODY_BYTES } from '../../http/request-reader.ts'
import type { Keys } from '../../postgres/accounts/repository.ts'
import type { Wallets } from '../../postgres/billing/repository.ts'
import type { Tasks } from '../../postgres/tasks/repository.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import type { CallGroups } from '../gateway/call-groups.ts'
import { type Family, OPEN } from './options.ts'

const MS_PER_SECOND = 1000

/** What the handlers read besides what all calls take. */
export interface CallRouteDeps {
  readonly groups: CallGroups
  readonly models: ModelsDeps
  readonly spending: Spending
  readonly log: LogReading
  readonly wiki: McpDeps
}

/** What an account and a key have spent. */
interface Spending {
  readonly callLog: CallSummaries
  readonly keys: Keys
}

/** The call log, and what its answers have besides. */
interface LogReading {
  readonly callLog: CallLog
  readonly tasks: Tasks
  readonly wallets: Wallets
  /** Signs the cursors; the same on every gateway process. */
  readonly cursorKey: Uint8Array
}

export function callRoutes({ groups, models, spending, log, wiki }: CallRouteDeps) {
  const { access } = groups
  const { forwarding } = groups
  const callUpstream: typeof forwarding.callUpstream = (call, handler) =>
    forwarding.callUpstream(call, handler, findCompactingAdapter(call.channel))
  return {
    createChatCompletion: chat(groups, DIALECTS['chat-completions']),
    createCompletion: chat(groups, DIALECTS['chat-completions'], 'completions'),
    createMessage: chat(groups, DIALECTS.messages),
    countMessageTokens: countTokens(groups, 'messages'),
    generateContent: chat(groups, DIALECTS['generate-content']),
    streamGenerateContent: chat(groups, DIALECTS['generate-content'], 'generate-content-stream'),
    countContentTokens: countTokens(groups, 'generate-content'),
    createResponse: chat(groups, DIALECTS.responses),
    openResponseSocket: {
      handler: openResponseSocket(groups),
      maxSocketMs: () => access.catalog().config.limits.websocket_seconds * MS_PER_SECOND,
    },
    compactResponse: chat(
      { ...groups, forwarding: { ...forwarding, callUpstream } },
      DIALECTS.responses,
      'responses-compaction',
    ),
    countResponseTokens: countTokens(groups, 'responses'),
    showResponse: showResponse(groups),
    deleteResponse: deleteResponse(groups),
    cancelResponse: cancelResponse(groups),
    listResponseInput: listResponseInput(groups),
    beginConversation: beginConversation(groups),
    showConversation: showConversation(groups),
    changeConversation: changeConversation(groups),
    deleteConversation: deleteConversation(groups),
    listConversationItems: listConversationItems(groups),
    addConversationItems: addConversationItems(groups),
    showConversationItem: showConversationItem(groups),
    deleteConversationItem: deleteConversationItem(groups),
    createEmbedding: passCall(groups, 'embeddings'),
    rerank: passCall(groups, 'rerank'),
    transcribe: { handler: passCall(groups, 'audio_transcriptions'), maxFormBytes: MAX_BODY_BYTES },

    searchWiki: searchWiki(access, wiki),
    listWikiBases: listBases(access, wiki),
    listWikiTags: listTags(access, wiki),
    listWikiPagesByTag: listByTag(access, wiki),
    readWikiPages: readPages(access, wiki),
    readWikiPage: readPage(access, wiki),
    listWikiBacklinks: listBacklinks(access, wiki),
    showWikiSource: showSource(access, wiki),
    callMcp: { handler: mcp(access, wiki), maxBodyBytes: MCP_MAX_BODY_BYTES },

    listModels: listModels(access, models),
    showModel: showModel(access, models),
    listContentModels: listContentModels(access, models),
    showContentModel: showContentModel(access, models),
    listPublicModels: { handler: listPublicModels(models), ...OPEN },
    showBalance: balance(access),
    showKeyUsage: keyUsage(access, spending),
    sumUsage: usage(access, spending),
    showBillingSubscription: billingSubscription(access, spending),
    sumBillingUsage: billingUsage(access, spending),
    listCreditGrants: creditGrants(access, spending),
    listLogs: listLogs(access, log),
    sumLogs: sumLogs(access, log),
    showLog: showLog(access, log),
  } satisfies Family
}
