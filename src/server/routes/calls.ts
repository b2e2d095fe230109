/** Routes that a key opens and whose answer comes at once: chat, models, knowledge bases, call log, account. */
import { balance } from '../../../pipelines/accounts/balance.ts'
import {
  type BillingUsageDeps,
  billingSubscription,
  billingUsage,
  creditGrants,
  type GrantDeps,
} from '../../../pipelines/accounts/billing.ts'
import {
  type ListModelsDeps,
  listContentModels,
  listModels,
  listPublicModels,
  showContentModel,
  showModel,
} from '../../../pipelines/accounts/models.ts'
import { type UsageDeps, usage } from '../../../pipelines/accounts/usage.ts'
import { type LogsDeps, listLogs, showLog, sumLogs } from '../../../pipelines/call-log/logs.ts'
import { type ChatDeps, chat } from '../../../pipelines/chat/chat.ts'
import { type CountTokensDeps, countTokens } from '../../../pipelines/chat/count-tokens.ts'
import { type EmbeddingsDeps, embeddings } from '../../../pipelines/chat/embeddings.ts'
import {
  addConversationItems,
  beginConversation,
  type ConversationDeps,
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
  type StoredResponsesDeps,
  showResponse,
} from '../../../pipelines/chat/stored/responses.ts'
import { MCP_MAX_BODY_BYTES, type McpDeps, mcp } from '../../../pipelines/knowledge/mcp.ts'
import {
  listBacklinks,
  listBases,
  listByTag,
  listTags,
  type ReadWikiDeps,
  readPage,
  readPages,
  searchWiki,
  showSource,
} from '../../../pipelines/knowledge/wiki.ts'
import { DIALECTS } from '../../protocols/registry.ts'
import { type Family, OPEN } from './options.ts'

export type CallRouteDeps = ChatDeps &
  CountTokensDeps &
  EmbeddingsDeps &
  StoredResponsesDeps &
  ConversationDeps &
  McpDeps &
  ReadWikiDeps &
  ListModelsDeps &
  UsageDeps &
  BillingUsageDeps &
  GrantDeps &
  LogsDeps

export function callRoutes(deps: CallRouteDeps) {
  const generateContent = chat(deps, DIALECTS['generate-content'])
  return {
    createChatCompletion: chat(deps, DIALECTS['chat-completions']),
    createMessage: chat(deps, DIALECTS.messages),
    countMessageTokens: countTokens(deps, 'messages'),
    generateContent,
    streamGenerateContent: generateContent,
    countContentTokens: countTokens(deps, 'generate-content'),
    createResponse: chat(deps, DIALECTS.responses),
    showResponse: showResponse(deps),
    deleteResponse: deleteResponse(deps),
    cancelResponse: cancelResponse(deps),
    listResponseInput: listResponseInput(deps),
    beginConversation: beginConversation(deps),
    showConversation: showConversation(deps),
    changeConversation: changeConversation(deps),
    deleteConversation: deleteConversation(deps),
    listConversationItems: listConversationItems(deps),
    addConversationItems: addConversationItems(deps),
    showConversationItem: showConversationItem(deps),
    deleteConversationItem: deleteConversationItem(deps),
    createEmbedding: embeddings(deps),

    searchWiki: searchWiki(deps),
    listWikiBases: listBases(deps),
    listWikiTags: listTags(deps),
    listWikiPagesByTag: listByTag(deps),
    readWikiPages: readPages(deps),
    readWikiPage: readPage(deps),
    listWikiBacklinks: listBacklinks(deps),
    showWikiSource: showSource(deps),
    callMcp: { handler: mcp(deps), maxBodyBytes: MCP_MAX_BODY_BYTES },

    listModels: listModels(deps),
    showModel: showModel(deps),
    listContentModels: listContentModels(deps),
    showContentModel: showContentModel(deps),
    listPublicModels: { handler: listPublicModels(deps), ...OPEN },
    showBalance: balance(deps),
    sumUsage: usage(deps),
    showBillingSubscription: billingSubscription(deps),
    sumBillingUsage: billingUsage(deps),
    listCreditGrants: creditGrants(deps),
    listLogs: listLogs(deps),
    sumLogs: sumLogs(deps),
    showLog: showLog(deps),
  } satisfies Family
}
