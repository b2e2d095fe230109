/** The fields of an agent. */
import { useQuery } from '@tanstack/react-query'
import type { AgentFile } from '../../../../schemas/accounts/agent.ts'
import { DEFAULT_KB_ID } from '../../../../schemas/knowledge/wiki.ts'
import { useBases } from '../../api/bases.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { useFields } from '../../ui/fields.ts'
import {
  CheckField,
  CheckFields,
  Field,
  NumberField,
  PageForm,
  SelectField,
  TextAreaField,
} from '../../ui/form.tsx'

interface KnowledgeFieldProps {
  readonly value: readonly string[]
  onChange(bases: readonly string[]): void
}

/** Offers the bases that the organization may read, and those of the agent that it may no longer read. */
function KnowledgeField({ value, onChange }: KnowledgeFieldProps) {
  const { account_id } = useAccount()
  const { data } = useBases(account_id)
  const named = [...(data?.data.filter(({ is_default }) => !is_default) ?? []), ...(data?.granted ?? [])]
  const names = new Map([
    ...value.map((id) => [id, id] as const),
    [DEFAULT_KB_ID, t('Account knowledge base')],
    ...named.map(({ id, name }) => [id, name] as const),
  ])
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 font-medium text-sm">{t('Knowledge bases')}</legend>
      <CheckFields options={names} chosen={value} onChoose={onChange} />
    </fieldset>
  )
}

interface FormProps {
  /** null: a new agent. */
  readonly file: AgentFile | null
  /** What the draft of this form is kept under: the agent, or the account of a new one. */
  readonly draft: string
  /** The text of the button; null if the user may not change the agent. */
  readonly submit: string | null
  readonly saves: {
    readonly error: Error | null
    readonly isPending: boolean
    mutateAsync(file: AgentFile): Promise<unknown>
  }
}

export function AgentForm({ file, draft, submit, saves }: FormProps) {
  const { data: models = [] } = useQuery(catalogQuery)
  const chat = models.filter(({ endpoint_type }) => endpoint_type === null)
  const form = useFields(`agent ${draft}`, {
    name: file?.name ?? '',
    model: file?.model ?? '',
    persona: file?.persona ?? '',
    temperature: file?.temperature?.toString() ?? '',
    knowledge: file?.knowledge ?? ([] as readonly string[]),
    web_search: file?.web_search ?? false,
    image_generation: file?.image_generation ?? false,
  })
  const { values, field, check } = form
  const model = values.model === '' ? (chat[0]?.id ?? '') : values.model
  const isListed = chat.some(({ id }) => id === model)
  const mutateAsync = () =>
    saves.mutateAsync({
      ...values,
      name: values.name.trim(),
      model,
      temperature: values.temperature === '' ? null : Number(values.temperature),
      knowledge: [...values.knowledge],
    })
  return (
    <PageForm
      sends={{ ...saves, mutateAsync }}
      fields={form}
      submit={submit}
      kind="primary"
      isAtEnd
      className=""
    >
      <fieldset disabled={submit === null} className="flex flex-col gap-3">
        <Field label={t('Name')} required maxLength={100} {...field('name')} />
        <SelectField
          label={t('Model')}
          {...field('model')}
          value={model}
          options={[
            ...(!isListed && model !== '' ? [[model, model] as const] : []),
            ...chat.map(({ id, display_name }) => [id, display_name] as const),
          ]}
        />
        <TextAreaField
          label={t('Persona')}
          hint={t('What the agent is and how it answers. Its keys cannot change it.')}
          required
          rows={8}
          maxLength={32_000}
          {...field('persona')}
        />
        <NumberField
          label={t('Temperature')}
          hint={t("Leave empty for the model's default.")}
          min={0}
          max={2}
          decimals={2}
          {...field('temperature')}
        />
        <KnowledgeField value={values.knowledge} onChange={(knowledge) => form.set({ knowledge })} />
        <CheckField label={t('Web search')} {...check('web_search')} />
        <CheckField label={t('Image generation')} {...check('image_generation')} />
      </fieldset>
    </PageForm>
  )
}
