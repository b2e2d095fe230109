/** Access of a channel by another means than a key. See docs/providers.md, "Access without a key". */
import { z } from 'zod'

/** Empty after `${NAME}` was replaced: the channel is off. */
const secret = z.string().trim()
const word = z
  .string()
  .trim()
  .regex(/^[\w.:/@+=,-]+$/, 'must be one word')

/** Signs each request: of the access key here, or of what the environment of the process has. */
const awsSigV4 = z.strictObject({
  type: z.literal('aws-sigv4'),
  region: z
    .string()
    .trim()
    .regex(/^[a-z0-9-]+$/, 'must be a region such as us-east-1'),
  service: word.default('bedrock'),
  access_key_id: secret.optional(),
  secret_access_key: secret.optional(),
  session_token: secret.optional(),
  /** Of the shared configuration files. */
  profile: word.optional(),
  /** A role that is taken on by these credentials. */
  role_arn: word.optional(),
  external_id: word.optional(),
})

/** A bearer token of Google Cloud: of a service account, or of what the environment of the process has. */
const google = z.strictObject({
  type: z.literal('google'),
  /** A file with the key of a service account, or another file of credentials. */
  credentials_file: z.string().trim().min(1).optional(),
  /** The content of such a file. */
  credentials: secret.optional(),
  scopes: z.array(z.string().min(1)).min(1).default(['https://www.googleapis.com/auth/cloud-platform']),
})

/** A bearer token of Microsoft Entra, for an application with a secret. */
const azureEntra = z.strictObject({
  type: z.literal('azure-entra'),
  tenant_id: word,
  client_id: word,
  client_secret: secret,
  scope: z.string().min(1).default('https://cognitiveservices.azure.com/.default'),
  /** Without a slash at its end. */
  authority: z
    .url({ protocol: /^https?$/ })
    .default('https://login.microsoftonline.com')
    .transform((url) => url.replace(/\/+$/, '')),
})

/** A bearer token that the gateway signs with the secret key. */
const jwtHs256 = z.strictObject({
  type: z.literal('jwt-hs256'),
  access_key: secret,
  secret_key: secret,
})

export const channelAuth = z.discriminatedUnion('type', [awsSigV4, google, azureEntra, jwtHs256], {
  error: 'must be one of aws-sigv4, google, azure-entra, jwt-hs256',
})
export type ChannelAuth = z.infer<typeof channelAuth>
export type AuthOf<Type extends ChannelAuth['type']> = Extract<ChannelAuth, { type: Type }>

/** Fields whose values are secrets, and must not be empty where they are given. */
export const AUTH_SECRETS = {
  'aws-sigv4': ['access_key_id', 'secret_access_key', 'session_token'],
  google: ['credentials'],
  'azure-entra': ['client_secret'],
  'jwt-hs256': ['access_key', 'secret_key'],
} as const satisfies Readonly<Record<ChannelAuth['type'], readonly string[]>>
