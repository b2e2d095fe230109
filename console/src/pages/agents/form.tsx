/** The fields of an agent. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import type { AgentFile } from '../../../../schemas/accounts/agent.ts'
import { DEFAULT_KB_ID } from '../../../../schemas/knowledge/wiki.ts'
import { useBases } from '../../api/bases.ts'
import { catalogQuery } from '../../api/catalog.ts'
import { useAccount } from '../../api/session.ts'
import { t } from '../../i18n.ts'
import { Button } from '../../ui/button.tsx'
import { Actions, CheckField, Field, Form, SelectField, TextAreaField } from '../../ui/form.tsx'
import { FormError } from '../../ui/states.tsx'

interface KnowledgeFieldProps {
  readonly value: readonly string[]
  onChange(bases: readonly string[]): void
}

/** The bases that the organization may read, and those of the agent that it may not read any more. */
function KnowledgeField({ value, onChange }: KnowledgeFieldProps) {
  const { account_id } = useAccount()
  const { data } = useBases(account_id)
  const named = [...(data?.data.filter(({ is_default }) => !is_default) ?? []), ...(data?.granted ?? [])]
  const names = new Map([
    ...value.map((id) => [id, id] as const),
    [DEFAULT_KB_ID, t("The account's own")],
    ...named.map(({ id, name }) => [id, name] as const),
  ])
  return (
    <fieldset className="flex flex-col gap-1">
      <legend className="mb-1 font-medium text-sm">{t('Knowledge bases')}</legend>
      {[...names].map(([id, name]) => (
        <CheckField
          key={id}
          label={name}
          checked={value.includes(id)}
          onCheck={(isChecked) => onChange(isChecked ? [...value, id] : value.filter((base) => base !== id))}
        />
      ))}
    </fieldset>
  )
}

interface FormProps {
  /** null: a new agent. */
  readonly file: AgentFile | null
  /** What the button does; null: the fields are for reading. */
  readonly act: string | null
  readonly isBusy: boolean
  readonly error: Error | null
  onSave(file: AgentFile): void
}

export function AgentForm({ file, act, isBusy, error, onSave }: FormProps) {
  const { data: models = [] } = useQuery(catalogQuery)
  const chat = models.filter(({ endpoint_type }) => endpoint_type === null)
  const [name, setName] = useState(file?.name ?? '')
  const [chosen, setModel] = useState(file?.model ?? '')
  const [persona, setPersona] = useState(file?.persona ?? '')
  const [temperature, setTemperature] = useState(file?.temperature?.toString() ?? '')
  const [knowledge, setKnowledge] = useState<readonly string[]>(file?.knowledge ?? [])
  const [webSearch, setWebSearch] = useState(file?.web_search ?? false)
  const [imageGeneration, setImageGeneration] = useState(file?.image_generation ?? false)
  const model = chosen === '' ? (chat[0]?.id ?? '') : chosen
  const isListed = chat.some(({ id }) => id === model)
  const save = () => {
    onSave({
      name: name.trim(),
      model,
      persona,
      temperature: temperature === '' ? null : Number(temperature),
      knowledge: [...knowledge],
      web_search: webSearch,
      image_generation: imageGeneration,
    })
  }
  return (
    <Form onSubmit={save}>
      <fieldset disabled={act === null} className="flex flex-col gap-3">
        <Field label={t('Name')} required maxLength={100} value={name} onText={setName} />
        <SelectField
          label={t('Model')}
          value={model}
          onText={setModel}
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
          value={persona}
          onText={setPersona}
        />
        <Field
          label={t('Temperature')}
          hint={t('Empty: as the model has it.')}
          type="number"
          min={0}
          max={2}
          step={0.1}
          value={temperature}
          onText={setTemperature}
        />
        <KnowledgeField value={knowledge} onChange={setKnowledge} />
        <CheckField label={t('Web search')} checked={webSearch} onCheck={setWebSearch} />
        <CheckField label={t('Image generation')} checked={imageGeneration} onCheck={setImageGeneration} />
        <FormError error={error} />
        {act !== null && (
          <Actions>
            <Button type="submit" kind="primary" isBusy={isBusy}>
              {act}
            </Button>
          </Actions>
        )}
      </fieldset>
    </Form>
  )
}
