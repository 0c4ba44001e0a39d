# The base rule of all other rules: log, benchmark, resources and shell command.
rule step:
    log:
        "<logs>/<job>.log",
    benchmark:
        "<benchmarks>/<job>.tsv"
    pathvars:
        job="step",
    conda:
        f"{ENVS}/simulate.yaml"
    threads: 1
    resources:
        mem_mb=memory,
        runtime=60,
    params:
        # Snakemake does not compare these functions of inputs; what a job depends on is in its options file.
        variables=lambda wildcards, input, output: STEPS.variables(input, output),
        command=STEPS.command,
    shell:
        "{params.variables} python -m ictd.pipeline.runner {params.command} > {log:q} 2>&1"
